/** What a user leaves on the device, and what of it is still there. */
import { type Api, call, type Json } from '../../support/api.ts'
import type { Machine } from './vm.ts'

export const OPERATOR = { username: 'carla', password: 'Second-Horse-7', role: 'operator' }
export const CATEGORY = { name: 'Loading bay', color: '#1e88e5' }

/** The one address under which the ports are forwarded; the network of the virtual machine gives it by DHCP, too. */
const ADDRESS = '10.0.2.15'

export interface Left {
  readonly operator: boolean
  readonly category: boolean
  readonly recordings: number
  readonly method: string
}

export async function leave(machine: Machine, api: Api): Promise<void> {
  await good(api.post('/api/users', OPERATOR))
  // Categories outlive each reset: it may be there.
  const category = await api.post('/api/tag-categories', CATEGORY)
  if (category.status !== 409) await good(Promise.resolve(category))
  const path = `/api/network/interfaces/${await wired(machine)}`
  const fixed = {
    method: 'static',
    ip_address: ADDRESS,
    netmask: '255.255.255.0',
    gateway: '10.0.2.2',
    dns_servers: ['10.0.2.3'],
  }
  await good(api.put(path, fixed))
  await machine.wait('the confirmation over the address', 50_000, () => good(api.post(`${path}/confirm`)))
}

/** As admin sees it. */
export async function left(machine: Machine, api: Api): Promise<Left> {
  const list = async (path: string, name: string) => (await good(api.get(path)))[name] as unknown as Json[]
  const { username, password } = OPERATOR
  const login = await call(`${machine.base}/api/login`, 'POST', {}, { username, password })
  const { interfaces } = await good(api.get('/api/network/config'))
  return {
    operator: login.status === 200,
    category: (await list('/api/tag-categories', 'categories')).some(({ name }) => String(name) === CATEGORY.name),
    recordings: (await list('/api/recordings?mode=all', 'recordings')).length,
    method: String(interfaces?.[await wired(machine)]?.method),
  }
}

async function wired(machine: Machine): Promise<string> {
  return machine.run('cd /sys/class/net && for link in *; do [ ! -e "$link/device" ] || echo "$link"; done')
}

async function good(answer: Promise<{ status: number; body: Json }>): Promise<Json> {
  const { status, body } = await answer
  if (status < 200 || status > 299) throw new Error(`${status} ${JSON.stringify(body)}`)
  return body
}
