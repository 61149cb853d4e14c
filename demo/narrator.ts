// Tells what happens, in lines that fit an 80-column terminal, each with the time since the demo began.

const WIDTH = 80;
const MARGIN = "             ";

export interface Narrator {
  /** Milliseconds since the narrator was made. */
  elapsedMs(): number;
  /** One thing that happened just now; long text is wrapped under its time. */
  say(text: string): void;
  /** A heading: what comes next, and why. */
  chapter(title: string): void;
}

export function createNarrator(): Narrator {
  const startMs = performance.now();
  const elapsedMs = () => Math.round(performance.now() - startMs);
  return {
    elapsedMs,
    say: (text) => {
      const [first = "", ...rest] = wrap(text, WIDTH - MARGIN.length);
      console.log(`${`t+${String(elapsedMs()).padStart(5)} ms`.padEnd(MARGIN.length)}${first}`);
      for (const line of rest) console.log(MARGIN + line);
    },
    chapter: (title) => console.log(`\n${title}`),
  };
}

/** Splits text at spaces into lines of at most `width` characters; a longer word stays whole. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
