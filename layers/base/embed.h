/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embed.h - from an interface to what implements it.
 *
 * An interface is a struct of functions that lies in a larger struct; who is
 * called through it gets the interface and asks for the whole.
 */
#pragma once

#include <stddef.h>

/* The type of which *ptr is the member. */
#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
