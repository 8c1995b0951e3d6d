mkdir deep
touch -d @1000 deep
