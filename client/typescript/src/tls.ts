import { X509Certificate } from 'node:crypto';
import * as fs from 'node:fs';
import * as net from 'node:net';
import * as tls from 'node:tls';

import { type Failure, failed } from './errors.js';
import type { TlsOptions } from './options.js';

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** The files of TLS. They are read again when one has changed; unusable ones leave the last usable ones in force. */
export class TlsFiles {
  private stamp = '';
  private context: tls.SecureContext | undefined;

  constructor(private readonly said: TlsOptions) {}

  /** Begins TLS on a connection to the host. Throws if the files were never usable. */
  begin(socket: net.Socket, host: string): tls.TLSSocket {
    const name = this.said.name ?? host;
    const options: tls.ConnectionOptions = {
      socket,
      rejectUnauthorized: true, // whatever the environment says
      secureContext: this.current(),
      checkServerIdentity: (_, certificate) => identityFault(name, certificate),
    };
    if (net.isIP(name) === 0) options.servername = name;
    return tls.connect(options);
  }

  private current(): tls.SecureContext {
    const stamp = this.stampOfFiles();
    if (this.context && stamp === this.stamp) return this.context;
    try {
      this.context = this.read();
      this.stamp = stamp;
    } catch (fault) {
      if (!this.context) throw fault; // otherwise the next connection tries again
    }
    return this.context;
  }

  private stampOfFiles(): string {
    return [this.said.ca, this.said.cert, this.said.key].map((file) => {
      const stat = file === undefined ? undefined : fs.statSync(file, { throwIfNoEntry: false });
      return stat ? `${stat.mtimeMs} ${stat.size} ${stat.ino}` : '';
    }).join(';');
  }

  private read(): tls.SecureContext {
    const options: tls.SecureContextOptions = { minVersion: 'TLSv1.2' };
    if (this.said.ca !== undefined) options.ca = authorities(this.said.ca);
    if (this.said.cert !== undefined) options.cert = fs.readFileSync(this.said.cert);
    if (this.said.key !== undefined) options.key = fs.readFileSync(this.said.key);
    return tls.createSecureContext(options);
  }
}

/** Reads the certificates of a file. Node itself accepts a file that is only half written. */
function authorities(file: string): string[] {
  const text = fs.readFileSync(file, 'latin1');
  const found = text.match(PEM_CERTIFICATE) ?? [];
  if (found.length === 0 || found.length !== text.split('-----BEGIN CERTIFICATE-----').length - 1) {
    throw new Error(`${file} contains no certificate, or is incomplete`);
  }
  for (const one of found) new X509Certificate(one);
  return found;
}

function identityFault(name: string, certificate: tls.PeerCertificate): Error | undefined {
  if (!certificate.subjectaltname) return new Error(`its certificate has no subjectAltName, so it is not for ${name}`);
  if (tls.checkServerIdentity(name, certificate) === undefined) return undefined;
  return new Error(`its certificate is for ${certificate.subjectaltname}, not for ${name}`);
}

/** Codes of errors of the network, and not of TLS. */
const NETWORK = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED', 'ETIMEDOUT', 'ENETDOWN', 'ENETUNREACH', 'EHOSTUNREACH']);

export function isNetworkError(fault: NodeJS.ErrnoException): boolean {
  return fault.code !== undefined && NETWORK.has(fault.code);
}

/** Returns the failure of a handshake. */
export function tlsFailure(fault: NodeJS.ErrnoException): Failure {
  if (isNetworkError(fault)) return failed('unreachable', `in the TLS handshake: ${fault.message}`);
  // OpenSSL's text is error:0A000086:SSL routines:tls_process_server_certificate:certificate verify failed:...
  const reason = (fault as { reason?: unknown }).reason;
  return failed('wrong service', `TLS: ${typeof reason === 'string' ? reason : fault.message}`);
}
