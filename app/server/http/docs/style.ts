/** The looks of the page at `/api/docs`. */
export const STYLE = `:root { color-scheme: light dark; --line: #8885; --soft: #8882; --accent: #2a7de1 }
body { margin: 0; font: 15px/1.5 system-ui, sans-serif }
header { position: sticky; top: 0; display: flex; flex-wrap: wrap; gap: .75rem 1rem; align-items: center; padding: .75rem 1rem; background: Canvas; border-bottom: 1px solid var(--line) }
h1 { font-size: 1.1rem; margin: 0 }
h2 { font-size: 1rem; margin: 1.5rem 0 .5rem }
h3 { font-size: .85rem; margin: 1rem 0 .25rem }
small { opacity: .65; font-weight: normal }
#search { flex: 1 1 16rem; padding: .4rem .6rem; font: inherit }
main { max-width: 70rem; margin: 0 auto; padding: 0 1rem 3rem }
details { border: 1px solid var(--line); border-radius: 6px; margin: .35rem 0 }
summary { cursor: pointer; padding: .4rem .6rem; display: flex; flex-wrap: wrap; gap: .2rem .6rem; align-items: baseline }
.method { font: bold .75rem/1 ui-monospace, monospace; min-width: 3.6rem; color: var(--accent) }
.path { font-family: ui-monospace, monospace; overflow-wrap: anywhere }
.what { flex: 1; opacity: .8 }
.role { font-size: .75rem; padding: .05rem .45rem; border-radius: 1rem; background: var(--soft) }
.body { padding: .25rem .8rem .8rem; border-top: 1px solid var(--line) }
pre { overflow: auto; margin: 0; padding: .5rem; background: var(--soft); border-radius: 4px; font-size: .8rem }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; padding: .2rem .5rem .2rem 0; border-bottom: 1px solid var(--line); vertical-align: top; font-size: .85rem }
`
