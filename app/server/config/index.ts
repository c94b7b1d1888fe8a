export { type Applier, Configuration } from './configuration.ts'
export type { ConfigChange } from './history.ts'
export {
  CONFIG_VERSION,
  checkSection,
  defaultsOf,
  fitSection,
  isSection,
  type PartialSections,
  SECTION_NAMES,
  SECTIONS,
  type Section,
  type SectionValues,
} from './sections.ts'
