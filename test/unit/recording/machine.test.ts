import fc from 'fast-check'
import t from 'tap'
import { nextRecordingState, RECORDING_STATES, type RecordingState } from '../../../app/server/recording/machine.ts'

t.test('the transitions of the specification, and no others', async (t) => {
  t.equal(nextRecordingState('stopped', 'start'), 'recording')
  t.equal(nextRecordingState('recording', 'start'), undefined)
  t.equal(nextRecordingState('recording', 'stop'), 'stopped')
  t.equal(nextRecordingState('stopped', 'stop'), undefined)
  t.equal(nextRecordingState('paused', 'stop'), undefined)
  t.equal(nextRecordingState('recording', 'ended'), 'stopped')
})

t.test('no sequence of triggers leads outside the states', async () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom('start', 'stop', 'ended' as const)), (triggers) => {
      let state: RecordingState = 'stopped'
      for (const trigger of triggers) state = nextRecordingState(state, trigger as 'start') ?? state
      return RECORDING_STATES.includes(state)
    }),
  )
})
