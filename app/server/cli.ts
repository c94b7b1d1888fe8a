/** Options: defaults, then the configuration file, then `CAMERA_*` variables, then the command line. */
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { type CameraSpec, parseCameraSpec } from './cameras/index.ts'
import { errorText, StartupError } from './errors.ts'
import { parseProxyRange } from './http/index.ts'
import { LOG_LEVELS, type LogLevel } from './log.ts'
import type { RtspPorts } from './media/index.ts'

export interface Options {
  readonly dataDir: string
  /** Folder in which the system mounts media: `/media/<name>` lies below it, `/media/data` in the data folder. */
  readonly mediaRoot: string
  readonly httpPort: number
  readonly httpsPort: number
  /** Served like the ones above; 80 and 443 on the firmware image. */
  readonly extraHttpPorts: readonly number[]
  readonly extraHttpsPorts: readonly number[]
  /** In order of preference: the next one is for a process that may not bind the first. */
  readonly rtspPorts: readonly RtspPorts[]
  /** Basic tells the password to whoever listens; Digest does not. */
  readonly rtspBasic: 'always' | 'tls' | 'never'
  readonly dashboardPort: number
  readonly bind: string
  readonly cameras: readonly CameraSpec[]
  readonly adminPasswordFile: string | undefined
  readonly logLevel: LogLevel
  readonly mediaHelper: string | undefined
  /** The system service of the firmware image; where there is none, nothing of the host can be changed. */
  readonly systemSocket: string
  /** Certificates that may sign updates. */
  readonly updateKeyring: string
  readonly rtspMaxConnections: number
  /** Origins that browsers may call from; none by default. */
  readonly corsOrigins: readonly string[]
  /** Seconds. */
  readonly sessionTimeout: number
  readonly rateLimits: 'device' | 'overview' | 'off'
  /** Addresses or CIDR ranges of reverse proxies that tell the truth about their clients. */
  readonly trustedProxies: readonly string[]
  /** Plain HTTP sends to HTTPS. */
  readonly httpsRedirect: boolean
  /** Seconds; 0: no Strict-Transport-Security. */
  readonly hstsMaxAge: number
}

interface OptionSpec {
  readonly argument: string
  readonly help: string
  readonly fallback?: string
  readonly multiple?: true
}

const OPTIONS = {
  config: { argument: 'FILE', help: 'JSON file with the options below as keys ("http-port": 8080)' },
  'data-dir': { argument: 'DIR', help: 'where everything that must last is kept', fallback: './data' },
  'media-root': { argument: 'DIR', help: 'where the system mounts further media (/media/NAME)', fallback: '/media' },
  'http-port': { argument: 'N', help: 'HTTP', fallback: '8080' },
  'https-port': { argument: 'N', help: 'HTTPS', fallback: '8081' },
  'extra-http-port': { argument: 'N', help: 'HTTP on this port too; repeatable', multiple: true },
  'extra-https-port': { argument: 'N', help: 'HTTPS on this port too; repeatable', multiple: true },
  'rtsp-port': { argument: 'N', help: 'RTSP (554, or 8554 where this process may not bind 554)' },
  'rtsps-port': { argument: 'N', help: 'RTSP over TLS (322, or 8322 beside 8554)' },
  'rtsp-basic': { argument: 'WHERE', help: 'Basic credentials over RTSP: tls, always or never', fallback: 'tls' },
  'dashboard-port': { argument: 'N', help: 'monitoring dashboard', fallback: '8082' },
  bind: { argument: 'ADDR', help: 'address to listen on', fallback: '0.0.0.0' },
  camera: {
    argument: 'SPEC',
    help: 'test:1280x720@30, v4l2:/dev/video0 or file:/path/clip.mp4, with ,audio=none|test|auto|alsa:DEVICE behind it; repeatable',
    fallback: 'test:1280x720@30',
    multiple: true,
  },
  'admin-password-file': { argument: 'FILE', help: "sets the admin's password at the first start" },
  'log-level': { argument: 'LEVEL', help: LOG_LEVELS.join(', '), fallback: 'info' },
  'rtsp-max-connections': { argument: 'N', help: 'RTSP connections at once', fallback: '10' },
  'cors-origin': { argument: 'ORIGIN', help: 'origin that browsers may call from; repeatable', multiple: true },
  'session-timeout': { argument: 'SECONDS', help: 'lifetime of a login', fallback: '3600' },
  'media-helper': { argument: 'FILE', help: 'the media helper (camera-media beside this program)' },
  'system-socket': {
    argument: 'FILE',
    help: "the firmware image's system service; without it the host stays untouched",
    fallback: '/run/camera-system.sock',
  },
  'update-keyring': { argument: 'FILE', help: 'whose updates are trusted', fallback: '/etc/rauc/keyring.pem' },
  'rate-limits': { argument: 'SET', help: 'device, overview or off', fallback: 'device' },
  'trusted-proxy': { argument: 'CIDR', help: 'reverse proxy whose X-Forwarded-* are believed; repeatable', multiple: true },
  'https-redirect': { argument: 'on|off', help: 'send plain HTTP to HTTPS, /health excepted', fallback: 'off' },
  'hsts-max-age': { argument: 'SECONDS', help: 'Strict-Transport-Security over TLS; 0: none', fallback: '0' },
} as const satisfies Record<string, OptionSpec>

type Name = keyof typeof OPTIONS
type Values = Partial<Record<Name, string[]>>

const NAMES = Object.keys(OPTIONS) as Name[]

export function helpText(): string {
  const lines = NAMES.map((name) => {
    const { argument, help, fallback }: OptionSpec = OPTIONS[name]
    return `  ${`--${name} ${argument}`.padEnd(30)} ${help}${fallback === undefined ? '' : ` (${fallback})`}`
  })
  return [
    'camera-server: captures, streams, records and serves cameras',
    '',
    'Usage: camera-server [OPTIONS]',
    '',
    ...lines,
    '  --help                         this text',
    '  --version                      the version',
    '',
    'Each option is also read from the environment: --http-port as CAMERA_HTTP_PORT; repeatable ones separated by spaces.',
    'Port 0 takes a free port. When ready, one JSON line with the ports goes to standard output; the log goes to standard error.',
    '',
  ].join('\n')
}

/** What `argv` and the environment ask for; wrong options are a `StartupError` of one line. */
export function parseOptions(argv: readonly string[], env: NodeJS.ProcessEnv): Options | 'help' | 'version' {
  const line = fromArguments(argv)
  if (line === 'help' || line === 'version') return line
  const variables = fromEnvironment(env)
  const file = (line.config ?? variables.config)?.[0]
  const values: Values = { ...(file === undefined ? {} : fromFile(file)), ...variables, ...line }
  return interpret(values)
}

function fromArguments(argv: readonly string[]): Values | 'help' | 'version' {
  const known = Object.fromEntries(NAMES.map((name) => [name, { type: 'string', multiple: true } as const]))
  try {
    const { values } = parseArgs({
      args: [...argv],
      options: { ...known, help: { type: 'boolean', short: 'h' }, version: { type: 'boolean' } },
      strict: true,
    })
    if (values.help) return 'help'
    if (values.version) return 'version'
    return values as Values
  } catch (error) {
    throw new StartupError(`${errorText(error).split(/\. |\n/)[0]}; --help lists the options`)
  }
}

function fromEnvironment(env: NodeJS.ProcessEnv): Values {
  const values: Values = {}
  for (const name of NAMES) {
    const { multiple }: OptionSpec = OPTIONS[name]
    const value = env[`CAMERA_${name.toUpperCase().replaceAll('-', '_')}`]
    if (value) values[name] = multiple ? value.split(/\s+/).filter(Boolean) : [value]
  }
  return values
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new StartupError(`${file}: ${errorText(error)}`)
  }
}

/** The parser's own message would quote the file, which may be a secret that was named by mistake. */
function parseJson(file: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new StartupError(`${file}: is not valid JSON`)
  }
}

function fromFile(file: string): Values {
  const parsed = parseJson(file, readText(file))
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    throw new StartupError(`${file}: must hold a JSON object`)
  const values: Values = {}
  for (const [key, value] of Object.entries(parsed)) {
    if (!NAMES.includes(key as Name) || key === 'config') throw new StartupError(`${file}: there is no option "${key}"`)
    const items = Array.isArray(value) ? value : [value]
    if (!items.every((item) => ['string', 'number'].includes(typeof item)))
      throw new StartupError(`${file}: "${key}" must be text or a number`)
    values[key as Name] = items.map(String)
  }
  return values
}

function interpret(values: Values): Options {
  const text = (name: Name): string | undefined => {
    const given = values[name]
    const { fallback }: OptionSpec = OPTIONS[name]
    if (given && given.length > 1) throw new StartupError(`--${name} is given more than once`)
    return given?.[0] ?? fallback
  }
  const integer = (name: Name, minimum: number, maximum: number, value = text(name) ?? ''): number => {
    const number = Number(value)
    if (!/^\d+$/.test(value) || number < minimum || number > maximum) {
      throw new StartupError(`--${name}: "${value}" is no whole number from ${minimum} to ${maximum}`)
    }
    return number
  }
  const port = (name: Name): number | undefined => (text(name) === undefined ? undefined : integer(name, 0, 65_535))
  const ports = (name: Name): number[] => (values[name] ?? []).map((value) => integer(name, 0, 65_535, value))
  const choice = <const C extends readonly string[]>(name: Name, choices: C): C[number] => {
    const value = text(name) ?? ''
    if (!choices.includes(value)) throw new StartupError(`--${name}: "${value}" is none of ${choices.join(', ')}`)
    return value
  }
  const bind = text('bind') ?? ''
  if (!isIP(bind)) throw new StartupError(`--bind: "${bind}" is no IP address`)
  return {
    dataDir: resolve(text('data-dir') ?? ''),
    mediaRoot: resolve(text('media-root') ?? ''),
    httpPort: integer('http-port', 0, 65_535),
    httpsPort: integer('https-port', 0, 65_535),
    extraHttpPorts: ports('extra-http-port'),
    extraHttpsPorts: ports('extra-https-port'),
    rtspPorts: rtspPorts(port('rtsp-port'), port('rtsps-port')),
    rtspBasic: choice('rtsp-basic', ['tls', 'always', 'never']),
    dashboardPort: integer('dashboard-port', 0, 65_535),
    bind,
    cameras: (values.camera ?? [OPTIONS.camera.fallback]).map(cameraSpec),
    adminPasswordFile: text('admin-password-file'),
    logLevel: choice('log-level', LOG_LEVELS),
    mediaHelper: text('media-helper'),
    systemSocket: resolve(text('system-socket') ?? ''),
    updateKeyring: resolve(text('update-keyring') ?? ''),
    rtspMaxConnections: integer('rtsp-max-connections', 1, 1000),
    corsOrigins: values['cors-origin'] ?? [],
    sessionTimeout: integer('session-timeout', 1, 31_536_000),
    rateLimits: choice('rate-limits', ['device', 'overview', 'off']),
    trustedProxies: (values['trusted-proxy'] ?? []).map(proxyRange),
    httpsRedirect: choice('https-redirect', ['on', 'off']) === 'on',
    hstsMaxAge: integer('hsts-max-age', 0, 63_072_000),
  }
}

function proxyRange(text: string): string {
  try {
    parseProxyRange(text)
    return text
  } catch {
    throw new StartupError(`--trusted-proxy: "${text}" is no IP address or range such as 192.0.2.0/24`)
  }
}

/** A port that was given is meant; only the usual ones have a second choice. */
function rtspPorts(plain: number | undefined, tls: number | undefined): RtspPorts[] {
  const usual = { plain: plain ?? 554, tls: tls ?? 322 }
  const unprivileged = { plain: plain ?? 8554, tls: tls ?? 8322 }
  return plain !== undefined && tls !== undefined ? [usual] : [usual, unprivileged]
}

function cameraSpec(text: string): CameraSpec {
  try {
    return parseCameraSpec(text)
  } catch (error) {
    throw new StartupError(`--camera: ${errorText(error)}`)
  }
}
