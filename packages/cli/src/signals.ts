// Signals as events: the first asks for a graceful end, further ones for a quicker one.

/** A watch on signals; as long as it is not released, they do not end the process by themselves. */
export interface SignalWatch {
  /** Resolves with the first signal. */
  readonly first: Promise<NodeJS.Signals>;
  /** Runs whenever another one follows; `count` is 2 for the second signal. */
  onFurther(run: (count: number) => void): void;
  /** Gives the signals back to Node. */
  release(): void;
}

/** Watches `names` from now on. Of `firstOnly` only the first signal counts: as a further one it says nothing new. */
export function nextSignal(
  names: readonly NodeJS.Signals[],
  firstOnly: readonly NodeJS.Signals[] = [],
): SignalWatch {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let count = 0;
  let runFurther: ((count: number) => void) | undefined;
  const onSignal = (name: NodeJS.Signals) => {
    if (count > 0 && firstOnly.includes(name)) return;
    count += 1;
    if (count === 1) resolve(name);
    else runFurther?.(count);
  };
  for (const name of names) process.on(name, onSignal);
  return {
    first: promise,
    onFurther: (run) => {
      runFurther = run;
    },
    release: () => {
      for (const name of names) process.off(name, onSignal);
    },
  };
}
