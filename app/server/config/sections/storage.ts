/** How much is kept, and for how long. */
import { type Static, Type } from '@sinclair/typebox'

const GIB = 1024 ** 3
const MAX_BYTES = Number.MAX_SAFE_INTEGER

export const Storage = Type.Object({
  retention_days: Type.Integer({
    minimum: 0,
    maximum: 3650,
    default: 30,
    description: 'untagged recordings older than this are removed; 0: none for its age',
  }),
  retention_min_free_bytes: Type.Integer({
    minimum: 0,
    maximum: MAX_BYTES,
    default: 2 * GIB,
    description: 'with less free space the oldest untagged recordings are removed; 0: none for the space',
  }),
  start_margin_bytes: Type.Integer({
    minimum: 0,
    maximum: MAX_BYTES,
    default: 1_000_000_000,
    description: 'free space that a recording needs beyond its estimated size, or it is not started',
  }),
  max_upload_bytes: Type.Integer({ minimum: 1, maximum: MAX_BYTES, default: 8 * GIB, description: 'of one uploaded file' }),
  quota_bytes: Type.Integer({
    minimum: 0,
    maximum: MAX_BYTES,
    default: 0,
    description: 'what uploads and recordings may take together; 0: all that there is',
  }),
  segment_max_bytes: Type.Integer({
    minimum: 1024 ** 2,
    maximum: MAX_BYTES,
    default: 2 * GIB,
    description: 'a recording goes on in another file beyond this size',
  }),
  segment_max_seconds: Type.Integer({
    minimum: 2,
    maximum: 31_536_000,
    default: 3600,
    description: 'a recording goes on in another file beyond this length',
  }),
})
export type Storage = Static<typeof Storage>
