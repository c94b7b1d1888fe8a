/** Which of the server's events deserve a notice, and in which words. */
import type { ServerEvent } from './types.ts'

export type NoticeKind = 'info' | 'success' | 'error'

export interface NoticeText {
  readonly kind: NoticeKind
  readonly text: string
}

/** Why a recording ended when nobody stopped it. */
const ENDINGS: Readonly<Record<string, string>> = {
  disk_full: 'The disk is full: the recording was ended',
  error: 'The recording ended because of an error',
  helper_lost: 'The recording was interrupted',
  camera_removed: 'The recording ended because the camera was stopped',
}

export function noticeFor({ category, type, data }: ServerEvent): NoticeText | null {
  const name = typeof data.filename === 'string' ? data.filename : ''
  switch (`${category}/${type}`) {
    case 'recording/stopped':
      return stopped(name, data)
    case 'recording/resumed':
      // In the same file when somebody had paused it: he knows.
      return data.after === undefined ? null : { kind: 'info', text: `The recording goes on in ${name}` }
    case 'camera/snapshot':
      return { kind: 'success', text: `Still saved: ${name}` }
    case 'camera/no_signal':
      return { kind: 'error', text: 'The camera gives no signal' }
    case 'camera/connected':
      return { kind: 'success', text: 'The camera is connected' }
    case 'camera/stopped':
      return { kind: 'info', text: 'The camera was stopped' }
    default:
      return category === 'alert' ? { kind: 'error', text: alertText(type, data) } : null
  }
}

function stopped(name: string, data: ServerEvent['data']): NoticeText {
  const ending = typeof data.reason === 'string' ? ENDINGS[data.reason] : undefined
  if (ending !== undefined) return { kind: 'error', text: `${ending} (${name})` }
  if (data.state === 'defect') return { kind: 'error', text: `The recording ${name} cannot be played` }
  return { kind: 'success', text: `Recording saved: ${name}` }
}

function alertText(type: string, data: ServerEvent['data']): string {
  if (type === 'storage_full') return 'The disk is full. Delete recordings to make room.'
  return typeof data.message === 'string' ? data.message : `Alert: ${type.replaceAll('_', ' ')}`
}
