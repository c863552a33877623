// What servers of one cluster ask of each other. Programs of users do not need it: no stub contains
// it, and it may change with any version. The rules of firn.thrift apply.

namespace cpp firn.wire

// A request for numbers of a tag with buffer = owner, to the server that owns the tag's partition.
struct OwnedTake {
  1: string secret,                   // of the owner's tenure: proves that the asker reads the
                                      // cluster's registry, and names the tenure it read of
  2: string tag,                      // empty: asks which partitions the tenure owns now; if any,
                                      // the answer has a count, and `first` a bit for each of them
                                      // (0, of earlier versions: not known)
  3: string form,                     // of the tag, as the asker knows it
  4: i64 count                        // at most so many numbers
}

struct OwnedRange {
  1: i64 first,
  2: i64 count,                       // 0: ask again; the owner has changed or fetches numbers
  3: string trouble,                  // why the owner has no numbers; empty: it will
  4: bool exhausted,                  // with `trouble`: the tag has no more numbers
  5: string elsewhere                 // with count 0: why this server does not serve the tag,
                                      // perhaps not yet
}

service Peer {
  OwnedRange takeOwned(1: OwnedTake take)
}
