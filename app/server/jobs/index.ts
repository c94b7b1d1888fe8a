export { type Job, type JobContext, type JobError, type JobStatus, Jobs, seesJob } from './jobs.ts'
export { JOB_STATUSES } from './machine.ts'
