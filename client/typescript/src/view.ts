/** In the order in which servers are called: the later ones only when no earlier one is left. */
export const HEALTH = ['healthy', 'failing', 'ejected', 'disabled', 'draining', 'last resort', 'quarantined'] as const;

/**
 * The standing of a server:
 *
 * - `healthy`: calls use it first
 * - `failing`: it failed too often, but half of the servers are already ejected or quarantined; called after the healthy ones
 * - `ejected`: it is ejected after failures, or cannot issue for now
 * - `disabled`: an operator took it out, or its weight is 0
 * - `draining`: it is stopping
 * - `last resort`: a seed that is not in the list
 * - `quarantined`: its answers were invalid, or it is of another cluster
 */
export type ServerHealth = (typeof HEALTH)[number];

/** One server as the client sees it. */
export interface SeenServer {
  /** host:port */
  readonly address: string;
  readonly rack: number;
  readonly weight: number;
  readonly health: ServerHealth;
  /** A sentence, unless the server is healthy. */
  readonly why: string;
  readonly inFlight: number;
}

/** What a client has done since it was created. Each number only grows. */
export interface Counters {
  /** Calls to servers; ids from memory are not among them. */
  calls: number;
  /** Calls that failed without a refusal. */
  failed: number;
  /** Calls that a server refused. */
  refused: number;
  /** Requests that were sent. */
  attempts: number;
  /** Requests that used the retry budget. */
  retries: number;
  /** Retries that the exhausted retry budget prevented. */
  retriesDenied: number;
  /** Attempts without an answer in time. */
  timeouts: number;
  /** Invalid answers. */
  broken: number;
  /** Connections that were begun. */
  connects: number;
  /** Connections that failed before the server's status arrived. */
  connectsFailed: number;
  /** Server lists that were accepted. */
  lists: number;
  /** Ids from memory. */
  localTaken: number;
  /** Ids that were not in memory although their tag is prefetched. */
  localMissed: number;
}
