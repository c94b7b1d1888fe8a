/** Which recording an RTSP client gets at `/recording`: the one it names or the newest, if it is ready and the user may see its camera. */
import type { Component } from '../component.ts'
import type { DeviceStorage } from '../files/index.ts'
import { HELPER_ERROR, HelperError, type MediaSupervisor, type Requests } from '../media/index.ts'
import type { Catalogue } from './catalogue.ts'
import { type RecordingRow, VIDEO_TYPES } from './row.ts'

type Resolve = Requests['playback.resolve']

/** The cameras that an RTSP user may see; null: all; undefined: there is no such user. */
export type CamerasOf = (user: string) => readonly number[] | null | undefined

const PAGE = 200
/** Who may see none of so many newest recordings is told that there is none. */
const NEWEST_PAGES = 25

export class Playback implements Component {
  constructor(
    private readonly catalogue: Catalogue,
    private readonly storage: DeviceStorage,
    private readonly media: MediaSupervisor,
    private readonly camerasOf: CamerasOf,
  ) {}

  start(): void {
    this.media.handle('playback.resolve', (params) => this.resolve(params))
  }

  stop(): void {}

  resolve({ recording, user }: Resolve['params']): Resolve['result'] {
    const cameras = this.camerasOf(user)
    const sees = (row: RecordingRow | undefined): row is RecordingRow =>
      row !== undefined && isPlayable(row) && cameras !== undefined && (cameras === null || cameras.includes(row.camera))
    const row = recording === null ? this.newest(sees) : this.catalogue.get(Number(recording))
    if (!sees(row)) throw new HelperError(HELPER_ERROR.not_found, 'no such recording')
    return {
      recording: row.id,
      camera: row.camera,
      container: row.encoding === 'avi' ? 'avi' : 'mp4',
      parts: row.parts.map(({ path, duration }) => ({ path: this.storage.hostPath(path), duration_ms: duration })),
    }
  }

  private newest(sees: (row: RecordingRow) => boolean): RecordingRow | undefined {
    for (let page = 0; page < NEWEST_PAGES; page++) {
      const { rows } = this.catalogue.list({ limit: PAGE, offset: page * PAGE })
      const found = rows.find(sees)
      if (found || rows.length < PAGE) return found
    }
    return undefined
  }
}

export function isPlayable(row: RecordingRow): boolean {
  return row.state === 'ready' && VIDEO_TYPES.includes(row.media_type)
}
