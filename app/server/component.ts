/** A part with a life of its own. The constructor keeps its dependencies and does nothing else. */
export interface Component {
  start(): Promise<void> | void
  stop(): Promise<void> | void
}
