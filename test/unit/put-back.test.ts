/** The database is the copy from before an update: what follows from that must not keep the server from starting. */
import pino from 'pino'
import t from 'tap'
import { Bus, type ServerEvent } from '../../app/server/bus.ts'
import { Jobs } from '../../app/server/jobs/index.ts'
import { type PutBackParts, settlePutBack } from '../../app/server/put-back.ts'
import type { Store } from '../../app/server/store/index.ts'

t.test('a disk that is full: the admins hear of it, and the next start tries again', async (t) => {
  const putBack = { schema: 1, copied: '2026-11-01T10:00:00.000Z' }
  const transaction = () => {
    throw new Error('No space left on device')
  }
  const store = { putBack, transaction, putBackSettled: () => t.fail('nothing is settled') } as unknown as Store
  const lines: string[] = []
  const log = pino({}, { write: (line) => void lines.push(line) })
  const bus = new Bus()
  const events: ServerEvent[] = []
  bus.on('event', (event) => void events.push(event))
  const jobs = new Jobs(store, bus, log)
  settlePutBack({ store, bus, jobs, log, storage: {}, care: {} } as unknown as PutBackParts)
  t.match(events, [{ category: 'alert', type: 'database_put_back', data: { origin: 'copy', ...putBack } }])
  t.match(
    lines.map((line) => JSON.parse(line)),
    [{ level: 50, error: /No space left/ }],
  )
})
