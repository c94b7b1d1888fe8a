/** A wire between browser and server that can be cut and mended, as networks are. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'

export interface Wire {
  readonly base: string
  cut(): void
  mend(): void
}

export async function layWire(t: Test, port: number): Promise<Wire> {
  const sockets = new Set<Socket>()
  let whole = true
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
  }
  const cut = () => {
    whole = false
    for (const socket of sockets) socket.destroy()
  }
  const listener = createServer((near) => {
    keep(near)
    if (!whole) {
      near.destroy()
      return
    }
    const far = connect(port, '127.0.0.1')
    keep(far)
    near.pipe(far).pipe(near)
    near.on('close', () => far.destroy())
    far.on('close', () => near.destroy())
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  t.teardown(() => {
    cut()
    listener.close()
  })
  const { port: own } = listener.address() as AddressInfo
  return {
    base: `http://127.0.0.1:${own}`,
    cut,
    mend: () => {
      whole = true
    },
  }
}
