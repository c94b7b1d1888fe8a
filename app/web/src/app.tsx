/** The console's main page. */
import { CameraInfo } from './camera-info.tsx'
import { PictureControls } from './controls.tsx'
import { useDevice } from './device.ts'
import { Header } from './header.tsx'
import { LivePicture } from './live.tsx'
import { RecordBar } from './record.tsx'
import { Recordings } from './recordings.tsx'
import { mayControl, mayWatch, type User } from './session.ts'
import { Toasts, useNotices } from './toasts.tsx'

export function Console({ user, onSignOut }: { user: User; onSignOut: () => void }) {
  const { notices, notify, dismiss } = useNotices()
  const device = useDevice(user, notify)
  const controlling = mayControl(user)
  const watching = mayWatch(user)
  const { camera } = device

  return (
    <>
      <Header page="console" user={user} onSignOut={onSignOut} />
      <main class="console">
        <h1 class="hidden-text">Camera console</h1>
        <section class="stage" aria-label="Live picture">
          <LivePicture
            reason={camera?.reason ?? null}
            recordingSince={device.recordingSince}
            testPicture={camera?.device.startsWith('test:') === true}
          />
          {controlling && <RecordBar device={device} />}
        </section>
        <div class="side">
          {controlling && <PictureControls device={device} />}
          <CameraInfo camera={camera} watching={watching} notify={notify} />
        </div>
        {watching && <Recordings device={device} controlling={controlling} notify={notify} />}
      </main>
      <Toasts notices={notices} dismiss={dismiss} />
    </>
  )
}
