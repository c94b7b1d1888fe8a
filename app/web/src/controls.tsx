/** Picture settings. Every change goes out at once; what others change shows here at once. */
import type { Device } from './device.ts'
import { formatResolution } from './format.ts'
import { Slider } from './slider.tsx'

const RESOLUTIONS = ['640x480', '1280x720', '1920x1080', '3840x2160']
const RATES = [15, 25, 30, 60]
const NEUTRAL = { brightness: 50, contrast: 50, saturation: 50 }

export function PictureControls({ device }: { device: Device }) {
  const { keys, online, refusals, set } = device
  const { brightness, contrast, saturation, resolution, fps } = keys
  const known = brightness !== undefined && contrast !== undefined && saturation !== undefined
  const neutral = brightness === 50 && contrast === 50 && saturation === 50
  const recording = keys.record === true
  const shared = { refusals, disabled: !online || !known }

  return (
    <section class="card" aria-labelledby="picture-title">
      <div class="card-head">
        <h2 id="picture-title">Picture</h2>
        <button type="button" class="quiet" disabled={!online || !known || neutral} onClick={() => set(NEUTRAL)}>
          Reset
        </button>
      </div>
      <Slider label="Brightness" value={brightness ?? 50} onValue={(value) => set({ brightness: value })} {...shared} />
      <Slider label="Contrast" value={contrast ?? 50} onValue={(value) => set({ contrast: value })} {...shared} />
      <Slider label="Saturation" value={saturation ?? 50} onValue={(value) => set({ saturation: value })} {...shared} />
      <div class="selects">
        <Choice
          id="resolution"
          label="Resolution"
          value={resolution ?? ''}
          options={RESOLUTIONS}
          text={formatResolution}
          disabled={!online || recording || resolution === undefined}
          version={refusals}
          onValue={(value) => set({ resolution: value })}
        />
        <Choice
          id="fps"
          label="Frame rate"
          value={fps ?? 0}
          options={RATES}
          text={(rate) => `${rate} fps`}
          disabled={!online || recording || fps === undefined}
          version={refusals}
          onValue={(value) => set({ fps: value })}
        />
      </div>
      {recording && <p class="muted small">Resolution and frame rate cannot change during a recording.</p>}
    </section>
  )
}

interface ChoiceProps<T extends string | number> {
  readonly id: string
  readonly label: string
  readonly value: T
  readonly options: readonly T[]
  readonly text: (value: T) => string
  readonly disabled: boolean
  /** A new one puts the shown choice back to `value`: the server has refused the user's. */
  readonly version: number
  readonly onValue: (value: T) => void
}

function Choice<T extends string | number>({ id, label, value, options, text, disabled, version, onValue }: ChoiceProps<T>) {
  // The camera may run a mode that is not on offer here.
  const all = options.includes(value) || !value ? options : [value, ...options]
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select
        key={version}
        id={id}
        disabled={disabled}
        value={String(value)}
        onChange={(event) => {
          const chosen = all.find((option) => String(option) === event.currentTarget.value)
          if (chosen !== undefined) onValue(chosen)
        }}
      >
        {all.map((option) => (
          <option key={option} value={String(option)} selected={option === value}>
            {text(option)}
          </option>
        ))}
      </select>
    </div>
  )
}
