/* SPDX-License-Identifier: Apache-2.0 */
/*
 * @hearth/client - the daemon's methods as functions, for Node from 18 on and
 * for browsers. It stands on nothing else.
 */
export { createClient } from "./client.js";
export * from "./errors.js";
export { definePlane } from "./plane.js";
export { sleep } from "./sleep.js";
