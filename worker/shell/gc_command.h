#pragma once
// `proctor-worker gc`: makes room among the mirrors, trees and setup layers of a root.  0: done, 2:
// bad use, 4: the disk failed.

namespace proctor {

int collect_garbage(int argc, char** argv);

}  // namespace proctor
