// How a link calls what its user gave it to hear with.
//
// I1  What a listener throws ends nothing of the link: it is thrown again outside, where the program hears of it as of any
//     error that nobody caught.

/** Calls a listener. */
export function tellListener(tell: () => void): void {
  try {
    tell();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
