/* SPDX-License-Identifier: Apache-2.0 */
/* What the examples use of Node, whose own types are no part of Debian. */
declare const process: { exit(code: number): never };
