"""`python -m windrow` is the command line."""

from windrow.serving.cli import main

if __name__ == "__main__":
    main()
