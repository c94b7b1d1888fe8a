/** An appliance as far as the server can tell: the system service is the test's, the bundles are real. */
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { type Api, login } from '../../support/api.ts'
import { COMPATIBLE, makeSigner, type Signer } from '../../support/bundles.ts'
import { type Answer, DATA, type FakeSystem, startFakeSystem } from '../../support/fake-system.ts'
import { scratchFolder } from '../../support/scratch.ts'
import { startQuickServer, type TestServer } from '../../support/server.ts'

export const PATH = '/api/system/updates'
export const INFO = {
  version: '1.2.3',
  build: '2026-10-01T00:00:00Z',
  compatible: COMPATIBLE,
  board: 'test',
  channel: 'development',
  slot: 'A',
  serial: '123',
}

const bundle = (version: string) => ({ slot_status: { bundle: { version }, installed: { timestamp: '2026-10-02T00:00:00Z' } } })

export function slots(other: { version?: string; boot_status?: string; primary?: string } = {}): readonly string[] {
  const { version = '1.1.0', boot_status = 'good', primary = 'rootfs.0' } = other
  const status = {
    compatible: COMPATIBLE,
    booted: 'A',
    boot_primary: primary,
    slots: [
      { 'rootfs.0': { bootname: 'A', state: 'booted', boot_status: 'good' } },
      { 'rootfs.1': { bootname: 'B', state: 'inactive', boot_status, ...(version === '' ? {} : bundle(version)) } },
    ],
  }
  return [DATA(status), 'data env ORDER=A,B A_OK=1 A_TRY=0 B_OK=1 B_TRY=1', 'done']
}

export interface Appliance {
  readonly system: FakeSystem
  readonly server: TestServer
  readonly api: Api
  readonly folder: string
  /** Where media are mounted. */
  readonly media: string
  readonly trusted: Signer
  readonly stranger: Signer
  /** Where uploaded bundles lie. */
  readonly shelf: string
}

export async function startAppliance(t: Test, answers: Readonly<Record<string, Answer>> = {}): Promise<Appliance> {
  const folder = scratchFolder(t, 'appliance')
  const trusted = makeSigner(folder, 'trusted')
  const stranger = makeSigner(folder, 'stranger')
  const media = join(folder, 'media')
  mkdirSync(media)
  const system = await startFakeSystem(t, {
    info: [DATA(INFO), 'done'],
    slots: slots(),
    failures: ['done'],
    healthy: ['done'],
    reboot: ['done'],
    'factory-reset': ['done'],
    ...answers,
  })
  const host = ['--system-socket', system.socket, '--update-keyring', trusted.certificate, '--media-root', media]
  const server = await startQuickServer(t, { args: [...host, '--rate-limits', 'off', '--camera', 'test:640x360@30'] })
  const api = await login(server)
  return { system, server, api, folder, media, trusted, stranger, shelf: join(server.dataDir, 'updates') }
}

export async function upload(server: TestServer, api: Api, file: string, name: string, part = 'file') {
  const form = new FormData()
  form.append(part, new Blob([readFileSync(file)]), name)
  const headers = { authorization: `Bearer ${api.token}` }
  const response = await fetch(`${server.base}${PATH}/upload`, { method: 'POST', headers, body: form })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> & { error?: { code: string } } }
}
