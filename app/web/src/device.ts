/** What the page knows of the device, kept up to date by the socket and, where the socket says nothing, by asking. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { call } from './api.ts'
import { noticeFor } from './notices.ts'
import { mayWatch, type User } from './session.ts'
import { StateSocket } from './socket.ts'
import type { Notify } from './toasts.tsx'
import type { CameraEntry, CameraStatus, RecordingStatus, ServerEvent, StateKeys } from './types.ts'

export interface Device {
  readonly online: boolean
  readonly keys: StateKeys
  readonly camera: CameraEntry | null
  /** Epoch milliseconds by this browser's clock; null while nothing is recorded. */
  readonly recordingSince: number | null
  readonly freeBytes: number | null
  /** Grows when the catalogue has changed. */
  readonly catalogueVersion: number
  /** Grows when the server has refused something. */
  readonly refusals: number
  readonly set: (change: StateKeys) => void
}

const CAMERA_POLL_MS = 10_000

export function useDevice(user: User, notify: Notify): Device {
  const [online, setOnline] = useState(false)
  const [keys, setKeys] = useState<StateKeys>({})
  const [catalogueVersion, setCatalogueVersion] = useState(0)
  const [cameraVersion, setCameraVersion] = useState(0)
  const [refusals, setRefusals] = useState(0)
  const socket = useRef<StateSocket | null>(null)
  const watching = mayWatch(user)

  useEffect(() => {
    if (!watching) return
    const event = (news: ServerEvent) => {
      if (news.category === 'recording') setCatalogueVersion((version) => version + 1)
      if (news.category === 'camera') setCameraVersion((version) => version + 1)
      const notice = noticeFor(news)
      if (notice) notify(notice.kind, notice.text)
    }
    const failed = (message: string) => {
      setRefusals((count) => count + 1)
      notify('error', message)
    }
    const connection = new StateSocket({
      online: (now) => {
        setOnline(now)
        // What happened in between was not told.
        if (now) setCatalogueVersion((version) => version + 1)
      },
      keys: (change) => setKeys((before) => ({ ...before, ...change })),
      event,
      failed,
    })
    socket.current = connection
    connection.start()
    return () => connection.stop()
  }, [watching, notify])

  const set = useCallback(
    (change: StateKeys) => {
      if (socket.current?.set(change)) return
      setRefusals((count) => count + 1)
      notify('error', 'There is no connection to the camera; please try again in a moment')
    },
    [notify],
  )
  const camera = useCamera(`${cameraVersion} ${keys.resolution} ${keys.fps}`)
  return {
    online,
    keys,
    camera,
    ...useRecording(watching, keys.record === true, catalogueVersion),
    catalogueVersion,
    refusals,
    set,
  }
}

/** Asks again whenever `version` changes, and now and then. */
function useCamera(version: string): CameraEntry | null {
  const [camera, setCamera] = useState<CameraEntry | null>(null)
  // The version says when to ask again
  useEffect(() => {
    let current = true
    const ask = () =>
      call<CameraStatus>('GET', '/api/camera/status').then(
        ({ cameras, active_camera }) => current && setCamera(cameras.find(({ id }) => id === active_camera) ?? null),
        () => undefined,
      )
    void ask()
    const timer = setInterval(() => document.hidden || void ask(), CAMERA_POLL_MS)
    return () => {
      current = false
      clearInterval(timer)
    }
  }, [version])
  return camera
}

function useRecording(watching: boolean, recording: boolean, version: number): Pick<Device, 'recordingSince' | 'freeBytes'> {
  const [status, setStatus] = useState<{ since: number | null; free: number } | null>(null)
  // The version says when to ask again
  useEffect(() => {
    if (!watching) return
    let current = true
    call<RecordingStatus>('GET', '/api/recording/status').then(
      (answer) => {
        const since = answer.recording ? Date.now() - answer.duration * 1000 : null
        // Asked twice in one recording, the first answer stays: seconds are rounded, and the clock must not jump.
        const keep = (before: number | null | undefined) =>
          since !== null && before != null && Math.abs(before - since) < 1500 ? before : since
        if (current) setStatus((before) => ({ since: keep(before?.since), free: answer.remaining_space }))
      },
      () => undefined,
    )
    return () => {
      current = false
    }
  }, [watching, recording, version])
  return { recordingSince: recording ? (status?.since ?? null) : null, freeBytes: status?.free ?? null }
}
