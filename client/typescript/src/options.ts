import { FirnError, printable, textOf } from './errors.js';

/** TLS connections. The files are in PEM form and are read again when they change. */
export interface TlsOptions {
  /** File of trusted authorities; by default those of Node. */
  readonly ca?: string;
  /** File of the client's certificate, for servers that require one; needs `key`. */
  readonly cert?: string;
  /** File of the private key of `cert`. */
  readonly key?: string;
  /** Name that the certificates of all servers must contain; by default the host of each server's address. */
  readonly name?: string;
}

/** A tag whose ids are prefetched, so that taking one costs no call. */
export interface LocalTag {
  readonly tag: string;
  /** Ids that were requested longer ago are dropped, in milliseconds; 0: ids are kept. */
  readonly maxAgeMs: number;
  /** Time for which a fetch should last at the recent rate, in milliseconds. */
  readonly lastsMs: number;
  /** Maximum ids of one fetch. */
  readonly fetchMax: number;
}

/** Prefetches ids of a snowflake tag. They are at most 1 s old. A fetch takes what a server issues in 25 ms. */
export function snowflakeTag(tag: string): LocalTag {
  return { tag, maxAgeMs: 1_000, lastsMs: 250, fetchMax: 100_000 };
}

/** Prefetches ids of a segment tag. They are kept until they are used. */
export function segmentTag(tag: string): LocalTag {
  return { tag, maxAgeMs: 0, lastsMs: 1_000, fetchMax: 10_000_000 };
}

/** An event of servers, for the program's log. The library itself logs nothing. */
export interface ClientEvent {
  readonly kind: 'list' | 'unhealthy' | 'healthy' | 'quarantined' | 'draining' | 'no server';
  /** host:port, if the event is about one server. */
  readonly server: string;
  readonly detail: string;
}

/** The options of a client, which do not change. */
export interface ClientOptions {
  /** UUID of the cluster; by default that of the first server that answers. */
  readonly clusterUuid?: string;
  /** Servers of this rack are preferred while one of them is healthy. */
  readonly rack?: number;
  /** Maximum time of a call, in milliseconds, unless the call has a deadline of its own. Default: 200. */
  readonly deadlineMs?: number;
  /** Maximum time of an attempt at one server, connecting included, in milliseconds. Default: 80. */
  readonly attemptLimitMs?: number;
  /** Maximum number of requests of a call. Default: 3. */
  readonly attemptsMax?: number;
  /** Maximum number of servers that the client uses in a large cluster; 0: all. Default: 16. */
  readonly serversMax?: number;
  /** Whether a call ends with the first failure instead of failing over. Default: false. */
  readonly failfast?: boolean;
  /** Tags whose ids are prefetched. Default: none. */
  readonly localRanges?: readonly LocalTag[];
  /** Use TLS for all servers. By default TLS is used for the servers that the list marks so. */
  readonly tls?: TlsOptions;
  /** Receives events of servers. Its exceptions are ignored. */
  readonly onEvent?: (event: ClientEvent) => void;
}

/** The options of one call. */
export interface CallOptions {
  /** Maximum time of the call, in milliseconds. Default: `ClientOptions.deadlineMs`. */
  readonly deadlineMs?: number;
  /** Ends the call: it is rejected with the signal's reason. */
  readonly signal?: AbortSignal;
}

/** ClientOptions with their defaults. */
export interface Settings {
  readonly seeds: readonly string[];
  /** Servers report the list, and later changes. */
  readonly listsChange: boolean;
  readonly clusterUuid: string;
  readonly rack: number | undefined;
  readonly deadlineMs: number;
  readonly attemptLimitMs: number;
  readonly attemptsMax: number;
  readonly serversMax: number;
  readonly failfast: boolean;
  readonly localRanges: readonly LocalTag[];
  readonly tls: TlsOptions | undefined;
  readonly onEvent: ((event: ClientEvent) => void) | undefined;
}

const HOUR_MS = 3_600_000;
const UNIX = 'unix:';
const UNIX_PATH_MAX = 107; // bytes, in Linux

/** Returns the settings; throws a FirnError of the kind `invalid` that names every fault. */
export function settingsOf(servers: string, given: ClientOptions): Settings {
  const faults: string[] = [];
  const options = typeof given === 'object' ? given ?? {} : {};
  if (options !== given) faults.push(`options is ${textOf(given)}, not an object`);
  const number = (name: keyof ClientOptions, other: number, least: number, most: number): number => {
    const value = options[name] ?? other;
    if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
    faults.push(`${name} is ${textOf(value)}, not an integer from ${least} to ${most}`);
    return other;
  };
  const typed = <T>(name: string, type: string, value: T | null | undefined): T | undefined => {
    if (value === undefined || value === null || typeof value === type) return value ?? undefined;
    faults.push(`${name} is ${textOf(value)}, not a ${type}`);
    return undefined;
  };
  const [scheme, rest] = splitOnce(typed('servers', 'string', servers) ?? '', '://');
  const seeds = [...new Set((rest ?? '').split(','))];
  if (rest === undefined || (scheme !== 'firn' && scheme !== 'list')) {
    faults.push(`servers is '${printable(textOf(servers))}', neither firn://... nor list://...`);
  } else {
    for (const seed of seeds) {
      const fault = faultOfSeed(seed);
      if (fault) faults.push(`'${printable(seed)}'${fault}`);
    }
  }
  const localRanges = rangesOf(options.localRanges ?? [], faults);
  const tls = typed('tls', 'object', options.tls);
  for (const name of ['ca', 'cert', 'key', 'name'] as const) typed(`tls.${name}`, 'string', tls?.[name]);
  const settings: Settings = {
    seeds, localRanges,
    listsChange: scheme === 'firn',
    clusterUuid: typed('clusterUuid', 'string', options.clusterUuid) ?? '',
    rack: options.rack == undefined ? undefined : number('rack', 0, 0, 2 ** 31 - 1),
    deadlineMs: number('deadlineMs', 200, 1, HOUR_MS),
    attemptLimitMs: number('attemptLimitMs', 80, 1, HOUR_MS),
    attemptsMax: number('attemptsMax', 3, 1, 100),
    serversMax: number('serversMax', 16, 0, 100_000),
    failfast: typed('failfast', 'boolean', options.failfast) ?? false,
    tls,
    onEvent: typed('onEvent', 'function', options.onEvent),
  };
  if (tls && !tls.cert !== !tls.key) faults.push('tls needs both cert and key, or neither');
  if (faults.length > 0) throw new FirnError('invalid', faults.join('; '));
  return settings;
}

/** Returns the tags to prefetch; adds what is wrong with them to the faults. */
function rangesOf(ranges: readonly LocalTag[], faults: string[]): readonly LocalTag[] {
  const isRange = (one: LocalTag): boolean => typeof one?.tag === 'string' &&
    [one.maxAgeMs, one.lastsMs, one.fetchMax].every((value) => typeof value === 'number' && value >= 0);
  if (!Array.isArray(ranges) || !ranges.every(isRange)) {
    faults.push('localRanges is not an array of what segmentTag() and snowflakeTag() return');
    return [];
  }
  if (new Set(ranges.map((one: LocalTag) => one.tag)).size < ranges.length) faults.push('localRanges names a tag twice');
  return [...ranges] as LocalTag[];
}

/** Returns the path of unix:/path, or undefined if the address is not that of a Unix socket. */
export function pathOfSocket(address: string): string | undefined {
  return address.startsWith(UNIX) ? address.slice(UNIX.length) : undefined;
}

/** Returns what is wrong with host:port or unix:/path, to be read after the address; empty: nothing. */
function faultOfSeed(seed: string): string {
  const path = pathOfSocket(seed);
  if (path === undefined) return splitAddress(seed) ? '' : ' is not host:port';
  if (!path.startsWith('/')) return ': unix: requires an absolute path';
  if (Buffer.byteLength(path) > UNIX_PATH_MAX || path.includes('\0')) {
    return `: the path of a Unix socket has at most ${UNIX_PATH_MAX} bytes and no NUL`;
  }
  return '';
}

/** Returns host and port, or undefined if the text is not host:port. No host is named unix. */
export function splitAddress(address: string): { host: string; port: number } | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.%\w]+)\]|([^:[\]\s/]+)):(\d{1,5})$/.exec(address);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  const isPath = pathOfSocket(address) !== undefined;
  if (!host || isPath || port < 1 || port > 65_535 || printable(host) !== host) return undefined;
  return { host, port };
}

function splitOnce(text: string, mark: string): [string, string | undefined] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + mark.length)];
}
