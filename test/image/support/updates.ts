/** Updates by the API, as the tests use them: sent, installed, and what the device says of them. */
import { type Answer, type Api, type Json, until } from '../../support/api.ts'
import { type BundleName, bundle } from './bundles.ts'
import { upload } from './device.ts'
import type { Machine } from './vm.ts'

const INSTALL_LIMIT_MS = 300_000

/** To the id under which it can be installed. */
export async function sent(machine: Machine, api: Api, name: BundleName, file?: string): Promise<Json> {
  const { status, body } = await upload(machine, api, '/api/system/updates/upload', file ?? (await bundle(name)))
  if (status !== 200) throw new Error(`the upload of ${name} is refused: ${status} ${JSON.stringify(body)}`)
  return body
}

export function install(api: Api, id: Json | undefined, restart: boolean): Promise<Answer> {
  return api.post('/api/system/updates/install', { update_id: id, restart_after: restart })
}

/** Follows the job to its end; `seen` gets each value of its progress, `states` what the status says of the update on the way. */
export async function installed(api: Api, started: Answer, seen: number[] = [], states?: Set<string>): Promise<Json> {
  if (started.status !== 200) throw new Error(`the installation does not start: ${JSON.stringify(started.body)}`)
  const { body } = await until(
    async () => {
      const answer = await api.get(`/api/jobs/${started.body.job_id}`)
      if (states?.has('installing') === false && String(answer.body.status) === 'running')
        states.add(String((await updateStatus(api)).pending?.state))
      const progress = Number(answer.body.progress)
      if (progress !== seen.at(-1)) seen.push(progress)
      return answer
    },
    ({ status, body }) => status === 200 && String(body.status) !== 'running',
    'the end of the installation',
    INSTALL_LIMIT_MS,
  )
  return body
}

export async function updateStatus(api: Api): Promise<Json> {
  const { status, body } = await api.get('/api/system/updates/status')
  if (status !== 200) throw new Error(`no state of updates: ${status} ${JSON.stringify(body)}`)
  return body
}
