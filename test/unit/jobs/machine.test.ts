import fc from 'fast-check'
import t from 'tap'
import { type JobStatus, type JobTrigger, nextJobStatus } from '../../../app/server/jobs/machine.ts'

const TRIGGERS: readonly JobTrigger[] = ['cancel', 'done', 'error', 'server-ended']

t.test('a job that was cancelled ends as cancelled unless its work was done already', async (t) => {
  t.equal(nextJobStatus('running', 'cancel'), 'cancelling')
  t.equal(nextJobStatus('cancelling', 'error'), 'cancelled')
  t.equal(nextJobStatus('cancelling', 'done'), 'succeeded')
  t.equal(nextJobStatus('running', 'error'), 'failed')
})

t.test('whatever happens, a job ends once and stays as it ended', async () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...TRIGGERS)), (triggers) => {
      let status: JobStatus = 'running'
      let ends = 0
      for (const trigger of triggers) {
        const next = nextJobStatus(status, trigger)
        if (next === undefined) continue
        if (next !== 'cancelling') ends += 1
        status = next
      }
      return ends === (triggers.some((trigger) => trigger !== 'cancel') ? 1 : 0)
    }),
  )
})
