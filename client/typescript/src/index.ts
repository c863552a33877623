/**
 * Takes 64-bit ids that are never issued twice from a cluster of Firn servers.
 *
 * @packageDocumentation
 */
export { Client } from './client.js';
export { type Attempt, type End, type ErrorKind, FirnError, type Reason } from './errors.js';
export type { LeaseLoss } from './lease_request.js';
export { LocalGenerator, type LocalGeneratorOptions } from './local_generator.js';
export {
  type CallOptions, type ClientEvent, type ClientOptions, type LocalTag, segmentTag, snowflakeTag, type TlsOptions,
} from './options.js';
export type { Counters, SeenServer, ServerHealth } from './view.js';
