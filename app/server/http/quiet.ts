/**
 * The moment to close a listening socket beside another one on the same port. Where net.ipv4.tcp_migrate_req is not set (the image sets
 * it), Linux resets the connections that wait in the queue of a socket that is closed, finished handshakes and others. So it is done when
 * none is on its way, right after the event loop has taken what was there.
 */
import { readFileSync } from 'node:fs'

const PATIENCE_MS = 2000
/** A turn of the event loop in which nothing happened takes some microseconds. */
const IDLE_TURN_MS = 0.05
const SYN_RECV = '03'

/** Resolves in such a moment: what follows must follow at once. */
export async function untilQuiet(port: number): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS
  while (performance.now() < deadline && handshakesOn(port)) await turn()
  for (let idle = 0; idle < 2 && performance.now() < deadline; ) {
    const began = performance.now()
    await turn()
    idle = performance.now() - began < IDLE_TURN_MS ? idle + 1 : 0
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Whether the kernel has half-open connections to the port. */
function handshakesOn(port: number): boolean {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  return ['/proc/self/net/tcp', '/proc/self/net/tcp6'].some((file) =>
    lines(file).some((line) => {
      const [, local = '', , state] = line.trim().split(/\s+/, 4)
      return state === SYN_RECV && local.endsWith(suffix)
    }),
  )
}

function lines(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n')
  } catch {
    return []
  }
}
