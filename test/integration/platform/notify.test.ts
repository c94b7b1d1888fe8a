/** With a command of the test's own in the place of systemd-notify: it writes down what it was told, and can hang. */
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pino from 'pino'
import t, { type Test } from 'tap'
import { Notify } from '../../../app/server/platform/index.ts'
import { until } from '../../support/api.ts'
import { scratchFolder } from '../../support/scratch.ts'

const log = pino({ level: 'silent' })

function rig(t: Test, env: NodeJS.ProcessEnv, alive: () => Promise<boolean> = async () => true) {
  const folder = scratchFolder(t, 'notify')
  const told = join(folder, 'told')
  const command = join(folder, 'tell')
  writeFileSync(command, `#!/bin/sh\necho "$1" >>${told}\nwhile [ -e ${folder}/hang ]; do sleep 0.01; done\n`, { mode: 0o755 })
  const notify = new Notify(log, alive, { env: { PATH: process.env.PATH, ...env }, command })
  t.teardown(async () => {
    await notify.stop()
  })
  const lines = () => (existsSync(told) ? readFileSync(told, 'utf8').trim().split('\n') : [])
  return { notify, lines, hang: () => appendFileSync(join(folder, 'hang'), ''), go: () => rmSync(join(folder, 'hang')) }
}

const SOCKET = { NOTIFY_SOCKET: '/run/systemd/notify' }

t.test('ready, then ending; without a watchdog nothing between', async (t) => {
  const { notify, lines } = rig(t, SOCKET)
  await notify.start()
  t.same(lines(), ['READY=1'])
  await notify.stop()
  t.same(lines(), ['READY=1', 'STOPPING=1'])
})

t.test('nobody is told where nobody listens', async (t) => {
  const { notify, lines } = rig(t, { WATCHDOG_USEC: '3000' })
  await notify.start()
  await notify.stop()
  t.same(lines(), [])
})

t.test('the watchdog is fed a few times in its time, but not by a server that does no work, and never two at once', async (t) => {
  let alive = true
  let asked = 0
  const { notify, lines, hang, go } = rig(
    t,
    { ...SOCKET, WATCHDOG_USEC: '600000', WATCHDOG_PID: String(process.pid) },
    async () => {
      asked++
      return alive
    },
  )
  const fed = () => lines().filter((line) => line === 'WATCHDOG=1').length
  await notify.start()
  await until(fed, (times) => times >= 3, 'three words')
  alive = false
  const before = asked
  await until(
    () => asked,
    (times) => times >= before + 3,
    'questions that are answered no',
  )
  const still = fed()
  await until(
    () => asked,
    (times) => times >= before + 6,
    'more of them',
  )
  t.equal(fed(), still)
  hang()
  alive = true
  await until(fed, (times) => times === still + 1, 'a word that hangs')
  const hanging = asked
  await delay(450)
  t.equal(asked, hanging, 'two more turns have gone by')
  go()
  await until(fed, (times) => times >= still + 3, 'words after it')
})

t.test('a watchdog of another process is not ours', async (t) => {
  let asked = 0
  const { notify, lines } = rig(t, { ...SOCKET, WATCHDOG_USEC: '3000', WATCHDOG_PID: '1' }, async () => ++asked > 0)
  await notify.start()
  await delay(50)
  t.equal(asked, 0)
  t.same(lines(), ['READY=1'])
})

t.test('a command that is missing harms nobody', async (t) => {
  const notify = new Notify(log, async () => true, { env: SOCKET, command: '/nonexistent/systemd-notify' })
  await notify.start()
  await notify.stop()
  t.pass('it goes on')
})
