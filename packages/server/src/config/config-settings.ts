// Every setting that the environment and flags may override, with its names.
//
// The rule: the setting `public.port` is MOOR_PUBLIC_PORT and `--public-port`; capitals inside a key begin a new word.
// I1  Flags win over the environment, the environment over the file.
// I2  The database URL has no flag: command lines are readable by others.

/**
 * How the text of an override becomes a value. `path`: relative to the working directory. `list`: split at commas.
 * `peers`: `ID=URL`, split at commas.
 */
type OverrideKind = "text" | "path" | "integer" | "boolean" | "list" | "peers";

/** A setting that can be overridden. */
export interface Setting {
  /** Its place in the configuration, e.g. `["public", "port"]`. */
  readonly at: readonly string[];
  readonly kind: OverrideKind;
  /** Environment variable, e.g. `MOOR_PUBLIC_PORT`. */
  readonly variable: string;
  /** Flag, e.g. `--public-port`. */
  readonly flag: string;
}

/** Variable with the URL of the database: stands for `directory.postgres`, but for a bootstrap entry, which has none. */
export const DATABASE_URL_VARIABLE = "MOOR_DATABASE_URL";

const KINDS: Readonly<Record<string, OverrideKind>> = {
  id: "text",
  residency: "text",
  roles: "list",
  shards: "list",
  shardDomain: "text",
  "public.host": "text",
  "public.port": "integer",
  "public.reusePort": "boolean",
  "public.fd": "integer",
  "public.url": "text",
  "public.trustedProxies": "list",
  "public.tls.certFile": "path",
  "public.tls.keyFile": "path",
  "operator.host": "text",
  "operator.port": "integer",
  "internal.host": "text",
  "internal.port": "integer",
  "internal.url": "text",
  "internal.tls.caFile": "path",
  "internal.tls.certFile": "path",
  "internal.tls.keyFile": "path",
  "internal.peers": "peers",
  data: "path",
  "directory.postgres.urlFile": "path",
  nodeSecretFile: "path",
  entryMode: "text",
  corsOrigins: "list",
  logLevel: "text",
  graceMs: "integer",
};

/** Every setting that can be overridden. */
export const SETTINGS: readonly Setting[] = Object.entries(KINDS).map(([key, kind]) => {
  const at = key.split(".");
  const words = at.flatMap((part) => part.split(/(?=[A-Z])/)).map((word) => word.toLowerCase());
  return { at, kind, variable: `MOOR_${words.join("_").toUpperCase()}`, flag: `--${words.join("-")}` };
});
