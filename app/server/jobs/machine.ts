/** The life of a job, as a table. Pure. */

export const JOB_STATUSES = ['running', 'cancelling', 'succeeded', 'failed', 'cancelled', 'interrupted'] as const
/** `cancelling`: told to end, and not there yet. `interrupted`: the server ended before the job did. */
export type JobStatus = (typeof JOB_STATUSES)[number]
export type JobTrigger = 'cancel' | 'done' | 'error' | 'server-ended'

const TRANSITIONS: Record<JobStatus, Partial<Record<JobTrigger, JobStatus>>> = {
  running: { cancel: 'cancelling', done: 'succeeded', error: 'failed', 'server-ended': 'interrupted' },
  // Work that was over before the word reached it has succeeded: its result is there.
  cancelling: { done: 'succeeded', error: 'cancelled', 'server-ended': 'interrupted' },
  succeeded: {},
  failed: {},
  cancelled: {},
  interrupted: {},
}

/** Undefined: the trigger is refused in this status. */
export function nextJobStatus(status: JobStatus, trigger: JobTrigger): JobStatus | undefined {
  return TRANSITIONS[status][trigger]
}
