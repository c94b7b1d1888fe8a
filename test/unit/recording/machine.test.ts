import fc from 'fast-check'
import t from 'tap'
import {
  nextRecordingState,
  RECORDING_STATES,
  RECORDING_TRIGGERS,
  type RecordingState,
} from '../../../app/server/recording/machine.ts'

/** The specification's table, one line a transition; whatever is not here is refused. */
const ALLOWED: readonly [RecordingState, string, RecordingState][] = [
  ['stopped', 'start', 'recording'],
  ['recording', 'stop', 'stopped'],
  ['recording', 'pause', 'paused'],
  ['recording', 'ended', 'stopped'],
  ['paused', 'resume', 'recording'],
  ['paused', 'ended', 'stopped'],
]

t.test('the transitions of the specification, and no others', async (t) => {
  for (const state of RECORDING_STATES) {
    for (const trigger of RECORDING_TRIGGERS) {
      const expected = ALLOWED.find(([from, by]) => from === state && by === trigger)?.[2]
      t.equal(nextRecordingState(state, trigger), expected, `${state} ${trigger}`)
    }
  }
})

t.test('whatever is tried, a recording is paused only while one runs, and every one can be ended', async () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...RECORDING_TRIGGERS)), (triggers) => {
      let state: RecordingState = 'stopped'
      for (const trigger of triggers) {
        const next = nextRecordingState(state, trigger)
        if (next === 'paused' && state !== 'recording') return false
        state = next ?? state
      }
      const resumed = nextRecordingState(state, 'resume') ?? state
      return (nextRecordingState(resumed, 'stop') ?? resumed) === 'stopped'
    }),
  )
})
