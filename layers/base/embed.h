/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embed.h - from an interface to what implements it.
 *
 * An interface is a struct of functions inside a larger struct. What is called
 * through it gets a pointer to the interface, and finds the whole by this.
 */
#pragma once

#include <stddef.h>

/* The type of which *ptr is the member. */
#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
