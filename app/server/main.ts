/** The program: options in, one ready line out, signals to a clean stop. */
import { helpText, type Options, parseOptions } from './cli.ts'
import { ApiError, errorText, StartupError } from './errors.ts'
import { createLogger } from './log.ts'
import { programFolder } from './program.ts'
import { CameraServer } from './server.ts'
import { VERSION } from './version.ts'

/** Whatever hangs, the process is gone within the 5 seconds that it promises. */
const STOP_DEADLINE_MS = 4800
const EXIT_BAD_START = 2

async function main(): Promise<void> {
  const options = parseOptions(process.argv.slice(2), process.env)
  if (options === 'help') process.stdout.write(helpText())
  else if (options === 'version') process.stdout.write(`${VERSION}\n`)
  else await serve(options)
}

async function serve(options: Options): Promise<void> {
  const log = createLogger(options.logLevel)
  const server = new CameraServer(options, log, programFolder(process.argv[1], process.execPath))
  let stopping = false
  const stop = (signal: string) => {
    if (stopping) return
    stopping = true
    log.info({ component: 'main', signal }, 'stopping')
    setTimeout(() => process.exit(1), STOP_DEADLINE_MS).unref()
    server.stop().then(
      () => process.exit(0),
      () => process.exit(1),
    )
  }
  process.on('SIGTERM', () => stop('SIGTERM'))
  process.on('SIGINT', () => stop('SIGINT'))
  // A fault in one request must not take the recordings of all cameras with it.
  process.on('unhandledRejection', (reason) => log.error({ component: 'main', error: errorText(reason) }, 'unhandled rejection'))
  const ports = await server.start()
  process.stdout.write(`${JSON.stringify({ ready: true, ...ports })}\n`)
}

main().catch((error: unknown) => {
  const expected = error instanceof StartupError || error instanceof ApiError
  process.stderr.write(`camera-server: ${expected ? error.message : error instanceof Error ? error.stack : String(error)}\n`)
  process.exit(expected ? EXIT_BAD_START : 1)
})
