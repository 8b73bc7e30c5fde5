"""
What every part needs to call AWS: errors, DynamoDB items, times and rates.

    clients   makes the client of a service whose name is in a variable
    errors    classifies AWS errors as transient or permanent
    dynamodb  reads DynamoDB items attribute by attribute
    times     converts between times and the UTC text that records carry
    pace      limits the rate of calls with a token bucket
    pauses    the pauses between tries of a call that met others
"""
