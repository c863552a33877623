// What is wrong, as the banner shows it. Pure functions of the server's answers.

const kRefusedShown = 5;
const kUrgencies = ['data', 'refused', 'soon', 'unknown', 'note', 'good'];
const rank = ({urgency}) => kUrgencies.indexOf(urgency);
const byUrgency = (findings) => findings.toSorted((a, b) => rank(a) - rank(b));

// The age beyond which an answer about the cluster is shown as outdated.
const kOutdatedMs = 15000;

export const ageOf = (audit) => audit.age_ms + Date.now() - audit.fetched;
// Whether the answer does not show the present: it is old, or the registry cannot be read.
export const isOutdated = (audit) => Boolean(audit.trouble) || ageOf(audit) > kOutdatedMs;

// The troubles of this server itself, each with its urgency, most urgent first. `firn doctor` shows the
// same from its report.
export function troublesOf(status) {
  const refused = status.refused_tags.filter(({state}) => state !== 'disabled');
  const disabled = status.refused_tags.length - refused.length;
  const more = status.refused_tags_count - disabled - kRefusedShown;
  const troubles = refused.slice(0, kRefusedShown).map(
      ({tag, state, why}) => ({urgency: state === 'lost' ? 'data' : 'refused',
        what: `refuses tag ${tag} (${state}): ${why}`}));
  if (more > 0) troubles.push({urgency: 'refused', what: `refuses ${more} more tags`});
  if (status.trouble) troubles.unshift({urgency: status.trouble_urgency, what: status.trouble});
  if (status.overloaded) {
    troubles.push({urgency: 'refused', what: 'refuses calls (OVERLOADED): over 1 % in the last 10 s',
        fix: "add servers, or raise the tag's step; if the refusals name another cause, such as too many ids in one " +
            'call, do what they say'});
  }
  return byUrgency(troubles);
}

// All findings, most urgent first: those of the registry, and this server's own until its report has
// reached the registry.
function findingsOf({status, audit}) {
  const read = audit === null || audit.trouble ? [] : audit.findings;
  const reported = read.some(({urgency}) => urgency !== 'note');
  const own = status === null || reported ? [] :
      troublesOf(status).map((trouble) => ({...trouble, what: `This server: ${trouble.what}`}));
  return byUrgency([...read, ...own]);
}

// What the page itself has to say of the cluster, if anything.
function readingOf({status, audit, unread}) {
  if (audit === null) {
    if (unread && status?.cluster_name.startsWith('static:')) {
      return {urgency: 'note', what: `This server is ${status.state}. The cluster is not shown: ${unread}`};
    }
    if (unread) return {urgency: 'soon', what: `The cluster cannot be read: ${unread}`};
    return {urgency: 'unknown', what: 'The cluster is being read.'};
  }
  if (audit.trouble) return {urgency: 'refused', what: `The registry cannot be read: ${audit.trouble}`};
  if (!isOutdated(audit)) return undefined;
  return {urgency: 'unknown', what: `The cluster was read ${Math.round(ageOf(audit) / 1000)} s ago; totals ` +
      'and servers show that moment'};
}

// The banner: its urgency, its sentence, and the finding's fix. `status` and `audit` are null until
// they are read; `unread` says why the cluster cannot be read.
export function bannerOf(view) {
  const reading = readingOf(view);
  const [first] = byUrgency([...reading === undefined ? [] : [reading], ...findingsOf(view)]);
  return first ?? {urgency: 'good', what: 'Nothing is wrong.'};
}

// The lines below the banner's sentence.
export function linesOf(view) {
  const shown = bannerOf(view).what;
  return findingsOf(view).filter(({what}) => what !== shown);
}
