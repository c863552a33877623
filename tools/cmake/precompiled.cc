// Something to compile, so that CMake makes the precompiled headers that the others use.

int main() { return 0; }
