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

/** Levels of single components, for those too that are made later. */
const own = new WeakMap<Logger, Readonly<Record<string, LogLevel>>>()
/** Of each logger, those that were made of it: pino gives a child the level of its birth. */
const children = new WeakMap<Logger, Map<string, Logger[]>>()

/** Each line names the component that speaks. For components, which are few and last: the parent keeps it. */
export function childLogger(log: Logger, component: string): Logger {
  const child = log.child({ component }, { level: own.get(log)?.[component] ?? log.level })
  const known = children.get(log) ?? new Map<string, Logger[]>()
  children.set(log, known.set(component, [...(known.get(component) ?? []), child]))
  return child
}

/** The names that `childLogger` has given out. */
export function logComponents(log: Logger): string[] {
  return [...(children.get(log)?.keys() ?? [])].sort()
}

/** From now on, for the logger and its components; `components` names those with another level. */
export function setLogLevels(log: Logger, level: LogLevel, components: Readonly<Record<string, LogLevel>>): void {
  log.level = level
  own.set(log, components)
  for (const [component, loggers] of children.get(log) ?? []) {
    for (const child of loggers) child.level = components[component] ?? level
  }
}
