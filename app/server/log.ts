/** One pino logger for the process: JSON lines on standard error (standard output carries the ready line alone). */
import pino from 'pino'

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]
export type Logger = pino.Logger

export function createLogger(level: LogLevel): Logger {
  return pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, redact: ['password', 'token', '*.password', '*.token'] },
    pino.destination({ fd: 2, sync: true }),
  )
}

/** Each line names the component that speaks. */
export function childLogger(log: Logger, component: string): Logger {
  return log.child({ component })
}
