import t from 'tap'
import { NetworkSelfTest } from '../../../app/server/network/index.ts'
import { FakeNetwork } from '../../support/fake-network.ts'

const never = new AbortController().signal

t.test('without any network: what fails, and what cannot be told', async (t) => {
  const net = new FakeNetwork(t)
  net.link('eth0', 2, { carrier: '0' })
  const report = await new NetworkSelfTest(net.reader).run(undefined, never)
  t.match(report, {
    success: false,
    tests: [
      { name: 'link', status: 'failed' },
      { name: 'address', status: 'failed' },
      { name: 'gateway', status: 'unknown' },
      { name: 'dns', status: 'unknown' },
      { name: 'internet', status: 'unknown' },
    ],
  })
})

t.test('a gateway that refuses a connection is there; addresses need no name server', async (t) => {
  const net = new FakeNetwork(t)
  net.link('eth0', 2)
  net.hold('eth0', '127.0.0.9/8')
  // Nobody listens on its port 80, and that is an answer.
  net.defaultRoute('eth0', '127.0.0.77')
  const report = await new NetworkSelfTest(net.reader).run('127.0.0.78', never)
  t.match(report, {
    success: true,
    tests: [
      { status: 'ok' },
      { status: 'ok' },
      { status: 'ok', details: '127.0.0.77 answers' },
      { status: 'unknown' },
      { status: 'ok' },
    ],
  })
})

t.test('only link-local addresses are not enough', async (t) => {
  const net = new FakeNetwork(t)
  net.link('eth0', 2)
  net.hold('eth0', '169.254.7.7/16', 'fe80::1/64')
  const { tests } = await new NetworkSelfTest(net.reader).run(undefined, never)
  t.match(tests[1], { name: 'address', status: 'failed', details: 'Only link-local addresses' })
})

t.test('a time server that does not answer fails within its bound, and the whole test within its own', async (t) => {
  const net = new FakeNetwork(t)
  net.link('eth0', 2)
  net.hold('eth0', '10.0.0.5/24')
  net.write('etc/systemd/timesyncd.conf', 'NTP=127.0.0.79\n')
  const began = performance.now()
  const { success, tests } = await new NetworkSelfTest(net.reader, 300).run(undefined, never)
  t.ok(performance.now() - began < 5000)
  t.equal(success, true, 'a camera without the internet is fine')
  t.match(tests[4], { name: 'internet', status: 'failed' })
})

t.test('one at a time, and over when the client has gone', async (t) => {
  const net = new FakeNetwork(t)
  net.link('eth0', 2)
  const gone = new AbortController()
  const test = new NetworkSelfTest(net.reader)
  const first = test.run('192.0.2.254', gone.signal)
  await t.rejects(test.run(undefined, never), { code: 'CONFLICT' })
  gone.abort()
  t.match((await first).tests[4], { status: 'failed' })
  t.match(await test.run(undefined, never), { tests: { length: 5 } }, 'then the next one')
})
