/** What each section of the configuration acts on, beyond those who ask for it whenever they need it. */
import { readFileSync } from 'node:fs'
import { type Cameras, parseResolution } from './cameras/index.ts'
import type { Options } from './cli.ts'
import type { Configuration, PartialSections, SectionValues } from './config/index.ts'
import { ApiError, errorText, InvalidRequest, StartupError, UnsupportedSetting } from './errors.ts'
import { type HttpServer, type PolicyOptions, parseProxyRange } from './http/index.ts'
import { type Logger, logComponents, setLogLevels } from './log.ts'
import type { MediaSupervisor, Mode, RtspSettings } from './media/index.ts'
import type { Recorder } from './recording/index.ts'

/** The options that are defaults of the configuration. */
export function givenSections(options: Options): PartialSections {
  return {
    network: { rtsp_max_connections: options.rtspMaxConnections },
    security: {
      session_timeout: options.sessionTimeout,
      rate_limits: options.rateLimits,
      rtsp_basic: options.rtspBasic,
      cors_origins: [...options.corsOrigins],
      https_redirect: options.httpsRedirect,
      hsts_max_age: options.hstsMaxAge,
      trusted_proxies: [...options.trustedProxies],
    },
    logging: { level: options.logLevel },
  }
}

/** The mode of cameras for which nobody has chosen one. */
export function defaultMode({ default_resolution, default_framerate }: SectionValues['camera']): Mode {
  const size = parseResolution(default_resolution)
  if (!size)
    throw new ApiError('INVALID_RESOLUTION', 'Both sides must be even and at most 7680x4320', 'camera.default_resolution')
  return { ...size, fps: default_framerate }
}

export function policyOf({ network, security }: Pick<SectionValues, 'network' | 'security'>): PolicyOptions {
  return { ...ofNetwork(network), ...ofSecurity(security) }
}

function ofNetwork({ max_connections, max_websockets }: SectionValues['network']) {
  return { maxRequests: max_connections, maxWebSockets: max_websockets }
}

function ofSecurity({ cors_origins, trusted_proxies, https_redirect, hsts_max_age }: SectionValues['security']) {
  return {
    corsOrigins: cors_origins,
    trustedProxies: trusted_proxies,
    redirectToHttps: https_redirect,
    hstsMaxAge: hsts_max_age,
  }
}

/** RTSP's settings stand in two sections; the helper takes them together. */
export class RtspWiring {
  private inForce: RtspSettings | undefined

  constructor(private readonly configuration: Configuration) {}

  get settings(): RtspSettings {
    const { network, security } = this.configuration.all()
    return this.inForce ?? { max_connections: network.rtsp_max_connections, basic: security.rtsp_basic }
  }

  wire(media: MediaSupervisor): void {
    const apply = async (change: Partial<RtspSettings>) => {
      const before = this.settings
      const next = { ...before, ...change }
      if (next.basic === before.basic && next.max_connections === before.max_connections) return
      // Also for a helper that comes back while this is under way.
      this.inForce = next
      try {
        await media.applyRtsp(next)
      } catch (error) {
        this.inForce = before
        throw error
      }
    }
    this.configuration.use('network', { apply: (next) => apply({ max_connections: next.rtsp_max_connections }) })
    this.configuration.use('security', { apply: (next) => apply({ basic: next.rtsp_basic }) })
  }
}

export interface Wired {
  readonly configuration: Configuration
  readonly log: Logger
  readonly media: MediaSupervisor
  readonly cameras: Cameras
  readonly recorder: Recorder
  readonly http: HttpServer
}

export function wireConfiguration({ configuration, log, media, cameras, recorder, http }: Wired): void {
  configuration.guard(
    () => refuseWhileRecording(cameras, recorder),
    (change) => recorder.holdStarts(change),
  )
  configuration.use('camera', {
    check: (next, before) => {
      cameras.checkDefaultMode(defaultMode(next))
      if (next.auto_exposure !== before.auto_exposure)
        throw new UnsupportedSetting('camera.auto_exposure', 'The exposure of this camera cannot be fixed')
    },
    apply: (next) => cameras.applyDefaultMode(defaultMode(next)),
  })
  configuration.use('network', {
    apply: (next) => http.configure(ofNetwork(next)),
  })
  configuration.use('security', {
    check: ({ trusted_proxies }) => checkProxies(trusted_proxies),
    apply: (next) => http.configure(ofSecurity(next)),
  })
  configuration.use('logging', {
    check: ({ components }) => checkComponents(Object.keys(components), logComponents(log)),
    apply: ({ level, components }) => {
      setLogLevels(log, level, components)
      return media.applyLogLevel()
    },
  })
  const { level, components } = configuration.get('logging')
  setLogLevels(log, level, components)
}

function refuseWhileRecording(cameras: Cameras, recorder: Recorder): void {
  const busy = cameras.list().find(({ id }) => recorder.isRecording(id))
  if (busy) throw new ApiError('RECORDING_IN_PROGRESS', 'The configuration cannot change during a recording', `camera ${busy.id}`)
}

function checkProxies(ranges: readonly string[]): void {
  for (const [index, range] of ranges.entries()) {
    try {
      parseProxyRange(range)
    } catch {
      const field = `body.security.trusted_proxies.${index}`
      throw new InvalidRequest(field, 'Expected an IP address or a range such as 192.0.2.0/24')
    }
  }
}

function checkComponents(named: readonly string[], known: readonly string[]): void {
  const unknown = named.find((name) => !known.includes(name))
  if (unknown !== undefined)
    throw new InvalidRequest(`body.logging.components.${unknown}`, `The components are ${known.join(', ')}`)
}

/** The admin's password at first start, from the file that the options name. */
export function adminPassword(file: string | undefined): string | undefined {
  if (file === undefined) return undefined
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '')
  } catch (error) {
    throw new StartupError(`--admin-password-file: ${errorText(error)}`)
  }
}
