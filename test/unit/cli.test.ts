import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { helpText, type Options, parseOptions } from '../../app/server/cli.ts'
import { scratchFolder } from '../support/scratch.ts'

function options(argv: string[], env: NodeJS.ProcessEnv = {}): Options {
  const parsed = parseOptions(argv, env)
  if (typeof parsed === 'string') throw new Error(parsed)
  return parsed
}

t.test('defaults', async (t) => {
  const { httpPort, httpsPort, rtspPorts, dashboardPort, bind, cameras } = options([])
  t.same(
    { httpPort, httpsPort, rtspPorts, dashboardPort, bind },
    {
      httpPort: 8080,
      httpsPort: 8081,
      rtspPorts: [
        { plain: 554, tls: 322 },
        { plain: 8554, tls: 8322 },
      ],
      dashboardPort: 8082,
      bind: '0.0.0.0',
    },
  )
  t.same(cameras[0]?.mode, { width: 1280, height: 720, fps: 30 })
})

t.test('the command line wins over the environment, that over the file', async (t) => {
  const file = join(scratchFolder(t, 'cli'), 'camera.json')
  writeFileSync(file, JSON.stringify({ 'http-port': 1, 'https-port': 2, 'rtsp-port': 3, camera: ['test', 'test:640x480@15'] }))
  const parsed = options(['--config', file, '--http-port', '10'], { CAMERA_HTTP_PORT: '20', CAMERA_HTTPS_PORT: '30' })
  t.same(
    [parsed.httpPort, parsed.httpsPort, parsed.rtspPorts],
    [
      10,
      30,
      [
        { plain: 3, tls: 322 },
        { plain: 3, tls: 8322 },
      ],
    ],
  )
  t.equal(parsed.cameras.length, 2)
})

t.test('behind a proxy', async (t) => {
  t.match(options([]), { trustedProxies: [], httpsRedirect: false, hstsMaxAge: 0 })
  const argv = ['--trusted-proxy', '10.0.0.0/8', '--trusted-proxy', '::1', '--https-redirect', 'on', '--hsts-max-age', '600']
  t.match(options(argv), { trustedProxies: ['10.0.0.0/8', '::1'], httpsRedirect: true, hstsMaxAge: 600 })
})

t.test('every option is in the help', async (t) => {
  for (const name of ['--config', '--data-dir', '--camera', '--admin-password-file', '--log-level', '--bind'])
    t.match(helpText(), name)
})

for (const [argv, complaint] of [
  [['--http-port', '70000'], /http-port.*70000/],
  [['--http-port', '-1'], /http-port/],
  [['--nonsense'], /nonsense/],
  [['stray'], /stray/],
  [['--camera', 'test:1281x720@30'], /even/],
  [['--camera', 'v4l2:video0'], /absolute/],
  [['--camera', 'rtsp://x'], /no camera/],
  [['--log-level', 'loud'], /loud/],
  [['--bind', 'host.name'], /no IP address/],
  [['--config', '/does/not/exist'], /ENOENT/],
  [['--trusted-proxy', '10.0.0.0/33'], /trusted-proxy.*10\.0\.0\.0\/33/],
  [['--trusted-proxy', '10.0.0.0/8', '--trusted-proxy', 'proxy'], /"proxy"/],
  [['--https-redirect', 'yes'], /none of on, off/],
  [['--hsts-max-age', '-1'], /hsts-max-age/],
  [['--http-port', '1', '--http-port', '2'], /more than once/],
] as const) {
  t.test(`${argv.join(' ')} is refused in one line`, async (t) => {
    t.throws(() => parseOptions(argv, {}), { message: complaint })
    try {
      parseOptions(argv, {})
    } catch (error) {
      t.notMatch((error as Error).message, '\n')
    }
  })
}

t.test('further ports of HTTP and HTTPS, and the system service', async (t) => {
  const usual = options([])
  t.same([usual.extraHttpPorts, usual.extraHttpsPorts, usual.systemSocket], [[], [], '/run/camera-system.sock'])
  const given = options(['--extra-http-port', '80', '--extra-http-port', '8000', '--system-socket', '/x/y'], {
    CAMERA_EXTRA_HTTPS_PORT: '443 4433',
  })
  t.same([given.extraHttpPorts, given.extraHttpsPorts, given.systemSocket], [[80, 8000], [443, 4433], '/x/y'])
  t.throws(() => options(['--extra-http-port', '80', '--extra-http-port', '70000']), /--extra-http-port: "70000"/)
})
