import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { login, PATIENCE_MS } from '../../support/api.ts'
import { startServer } from '../../support/server.ts'

/** Exit status and all output, whatever it is. */
async function run(program: string, args: string[]): Promise<{ code: number; output: string }> {
  const child = promisify(execFile)(program, args, { timeout: PATIENCE_MS })
  child.child.stdin?.end('')
  return child.then(
    ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
    (error: { code: number; stdout: string; stderr: string }) => ({ code: error.code, output: error.stdout + error.stderr }),
  )
}

t.test('TLS 1.2 and 1.3 with forward secrecy, nothing older', async (t) => {
  const server = await startServer(t)
  const address = `127.0.0.1:${server.ports.https}`
  // Without this level Debian's client would not even offer the old versions and suites, and the test would prove nothing.
  const s_client = (...args: string[]) => run('openssl', ['s_client', '-connect', address, '-cipher', 'ALL:@SECLEVEL=0', ...args])
  for (const version of ['-tls1', '-tls1_1']) {
    const { code, output } = await s_client(version)
    t.not(code, 0, version)
    t.match(output, /alert protocol version|unsupported protocol/, version)
  }
  for (const [version, name] of [
    ['-tls1_2', 'TLSv1.2'],
    ['-tls1_3', 'TLSv1.3'],
  ] as const) {
    const { code, output } = await s_client(version)
    t.equal(code, 0, version)
    t.match(output, new RegExp(`New, ${name}, Cipher is (ECDHE|TLS_)`))
  }
  for (const suite of [
    'AES128-GCM-SHA256',
    'ECDHE-ECDSA-AES128-SHA',
    'ECDHE-ECDSA-AES256-SHA384',
    'DES-CBC3-SHA',
    'NULL-SHA256',
  ]) {
    const { code } = await run('openssl', ['s_client', '-connect', address, '-tls1_2', '-cipher', `${suite}:@SECLEVEL=0`])
    t.not(code, 0, suite)
  }
})

t.test('curl over each version, with the certificate checked', async (t) => {
  const server = await startServer(t)
  const { token } = await login(server)
  const pem = `${server.dataDir}/tls/server.pem`
  const curl = (...args: string[]) =>
    run('curl', [
      ...['-sS', '--cacert', pem, '-o', '/dev/null', '-w', '%{http_code}', '-H', `Authorization: Bearer ${token}`, ...args],
      `https://localhost:${server.ports.https}/api/status`,
    ])
  t.strictSame(await curl('--tls-max', '1.2'), { code: 0, output: '200' })
  t.strictSame(await curl('--tlsv1.3'), { code: 0, output: '200' })
  t.not((await curl('--tlsv1.1', '--tls-max', '1.1', '--ciphers', 'DEFAULT@SECLEVEL=0')).code, 0)
})
