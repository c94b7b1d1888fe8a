/** The network of the appliance: changes that prove themselves, and the self-test. */
export type { InterfaceRequest, Plan } from './plan.ts'
export { NetworkSelfTest, SELF_TEST_STEPS, type SelfTestReport } from './self-test.ts'
export { netmaskText } from './subnet.ts'
export { CONFIRM_WITHIN_SECONDS } from './system-trials.ts'
export { NetworkTrials } from './trials.ts'
