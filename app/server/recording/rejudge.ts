/** What the catalogue says of finished files, brought up to date with the files. */
import type { DeviceStorage } from '../files/index.ts'
import type { Catalogue } from './catalogue.ts'
import { judgeFile } from './finish.ts'
import type { RecordingPart, RecordingRow } from './row.ts'

/** Reads all parts back and enters what they are worth; a torn tail is cut off. Checksums of parts that changed are forgotten. */
export async function rejudge(row: RecordingRow, catalogue: Catalogue, storage: DeviceStorage): Promise<RecordingRow> {
  const parts: RecordingPart[] = []
  let allPlay = true
  for (const part of row.parts) {
    const { state, durationMs, sizeBytes } = await judgeFile(storage.hostPath(part.path))
    allPlay &&= state === 'ready'
    const same = sizeBytes === part.size && durationMs === part.duration
    parts.push({ ...part, duration: durationMs, size: sizeBytes, sha256: same ? part.sha256 : null })
  }
  const duration = parts.reduce((sum, part) => sum + part.duration, 0)
  const size = parts.reduce((sum, part) => sum + part.size, 0)
  const took = row.media_type === 'video' ? duration : row.timestamp_end - row.timestamp_start
  const change = {
    state: allPlay ? 'ready' : 'defect',
    duration,
    size,
    parts,
    timestamp_end: row.timestamp_start + took,
  } as const
  return catalogue.update(row.id, change) ?? { ...row, ...change }
}

/** The checksum of one part; nothing when the recording has gone meanwhile. */
export function enterHash(catalogue: Catalogue, id: number, path: string, sha256: string): void {
  const row = catalogue.get(id)
  if (!row) return
  catalogue.update(id, { parts: row.parts.map((part) => (part.path === path ? { ...part, sha256 } : part)) })
}
