/** Runs before the tests: makes what several of them begin with, so that they can run side by side. */
import { bundle } from './bundles.ts'
import { prepared } from './scenario.ts'

await Promise.all([prepared(), bundle('good'), bundle('kernel-panics')])
