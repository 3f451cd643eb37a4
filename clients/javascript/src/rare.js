/** What most plans do without, loaded where a bundle has it. */
import "./rare-buckets.js";
import "./rare-channels.js";
import "./rare-coins.js";
import "./rare-domains.js";
