/** What a release must show before it is confirmed. */
import { randomUUID } from 'node:crypto'
import type { Cameras } from '../cameras/index.ts'
import type { MediaSupervisor } from '../media/index.ts'
import { askSelf } from '../platform/index.ts'
import type { Store } from '../store/index.ts'
import type { Check } from './confirmation.ts'

/** The API lets in somebody with credentials and answers him, over a real connection. */
export function apiAnswers(bind: string, port: number, token: string): Check {
  return async () => {
    const { status, body } = await askSelf(bind, port, '/health', { authorization: `Bearer ${token}` })
    if (status !== 200) return `the API answers with status ${status}`
    return typeof (JSON.parse(body) as { status?: unknown }).status === 'string' ? null : 'the API answers something else'
  }
}

/** New pictures come from one of the cameras at least. Where somebody has stopped them all, the helper's answer has to do. */
export function picturesCome(media: Pick<MediaSupervisor, 'call'>, cameras: Pick<Cameras, 'list'>): Check {
  let before: ReadonlyMap<number, number> = new Map()
  return async () => {
    const stats = await media.call('stats.get', {})
    const now = new Map(stats.cameras.map(({ id, frames_captured }) => [id, frames_captured]))
    const earlier = before
    before = now
    if (cameras.list().every(({ settings }) => !settings.enabled)) return null
    const delivers = [...now].some(([id, frames]) => frames > (earlier.get(id) ?? Number.POSITIVE_INFINITY))
    return delivers ? null : 'no camera delivers new pictures'
  }
}

/** What is written can be read. */
export function storeWorks(store: Store): Check {
  return async () => {
    const table = store.table<string, string>('settings')
    const mark = randomUUID()
    store.urgent(() => table.put('updateStoreCheck', mark))
    return table.get('updateStoreCheck') === mark ? null : 'the database does not keep what is written'
  }
}

/**
 * Nothing is missing here, but the database is accepted where the release is on no trial and none waits for a restart: it is kept also without pictures
 * (`confirm`), and what is done on its database by then must not be given up.
 */
export function acceptsOutsideTrial(store: Store, isSettled: () => Promise<boolean>): Check {
  return async () => {
    if (!store.isAccepted && (await isSettled())) store.accept()
    return null
  }
}
