/** What the log tells. */
import { type Static, Type } from '@sinclair/typebox'
import { LOG_LEVELS } from '../../log.ts'

const Level = Type.Union(LOG_LEVELS.map((level) => Type.Literal(level)))

export const Logging = Type.Object({
  level: Type.Union(
    LOG_LEVELS.map((level) => Type.Literal(level)),
    { default: 'info', description: 'the least severe lines that are written, by this process and by the media helper' },
  ),
  components: Type.Record(Type.String({ pattern: '^[a-z][a-z0-9-]{0,31}$' }), Level, {
    maxProperties: 64,
    default: {},
    description: 'other levels for single components, by the name that stands in their lines (`http`, `media`, …)',
  }),
})
export type Logging = Static<typeof Logging>
