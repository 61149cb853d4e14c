// Who tells a link that the machine slept or has another network: the port, and what a browser's page knows.
//
// Spec: L14, L32.

/** What a platform tells of. */
export type WakeKind = "woke" | "network-changed";

/** A platform that notices. */
export interface WakeSource {
  /** Tells `onWake` from now on; the function given back ends that. */
  watch(onWake: (kind: WakeKind) => void): () => void;
}

/** The part of the DOM's event targets that is used. Node's global object has none of it, and React Native's window neither. */
interface Events {
  addEventListener?(name: string, run: () => void): void;
  removeEventListener?(name: string, run: () => void): void;
}

/** A page that is shown, resumed or online again. Workers hear of the network alone, and what is neither of nothing. */
export function createWakeSourceOfPage(): WakeSource {
  const { window, document } = globalThis as unknown as {
    readonly window?: Events;
    readonly document?: Events & { readonly visibilityState: string };
  };
  return {
    watch: (onWake) => {
      const woke = () => onWake("woke");
      const shown = () => {
        if (document?.visibilityState === "visible") woke();
      };
      const online = () => onWake("network-changed");
      const network = window ?? (globalThis as unknown as Events);
      const watched: readonly (readonly [Events | undefined, string, () => void])[] = [
        [document, "visibilitychange", shown],
        // The Page Lifecycle's end of `freeze`, and a page that comes back from the back-forward cache.
        [document, "resume", woke],
        [window, "pageshow", shown],
        [network, "online", online],
      ];
      for (const [target, name, run] of watched) target?.addEventListener?.(name, run);
      return () => {
        for (const [target, name, run] of watched) target?.removeEventListener?.(name, run);
      };
    },
  };
}
