#pragma once
// `proctor-worker gc`: makes room among the mirrors and trees of a root.  0: done, 2: bad use,
// 4: the disk failed.

namespace proctor {

int collect_garbage(int argc, char** argv);

}  // namespace proctor
